/* Made by bench/report_rivals.py from bench/results. */
const measured = {"machine": "NVIDIA H200", "commit": "aa5f965", "d": 65536, "n": 1024, "gigabytes_per_second": 4249, "ratio": {"64": 1.164, "256": 1.379, "512": 1.371, "1024": 1.341, "2048": 1.248, "4096": 1.247}};
