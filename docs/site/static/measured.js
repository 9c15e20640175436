/* Made by bench/report_rivals.py from bench/results. */
const measured = {"machine": "NVIDIA H200", "commit": "6185e7d", "d": 65536, "n": 1024, "gigabytes_per_second": 4271, "ratio": {"64": 1.175, "256": 1.142, "512": 1.121, "1024": 1.089, "2048": 1.058, "4096": 1.046}};
