/* Made by bench/report_rivals.py from bench/results. */
const measured = {"machine": "NVIDIA H200", "commit": "cef19ac", "d": 65536, "n": 1024, "gigabytes_per_second": 4223, "ratio": {"64": 1.192, "256": 1.192, "512": 1.163, "1024": 1.139, "2048": 1.093, "4096": 1.049}};
