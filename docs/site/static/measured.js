/* Made by bench/report_rivals.py from bench/results. */
const measured = {"machine": "NVIDIA H200", "commit": "6185e7d", "d": 65536, "n": 1024, "gigabytes_per_second": 4302, "ratio": {"64": 1.17, "256": 1.176, "512": 1.162, "1024": 1.118, "2048": 1.03, "4096": 1.076}};
