/* Made by bench/report_rivals.py from bench/results. */
const measured = {"machine": "NVIDIA H200", "commit": "b0c2e34", "d": 65536, "n": 1024, "gigabytes_per_second": 4212, "ratio": {"64": 1.154, "256": 1.155, "512": 1.123, "1024": 1.12, "2048": 1.073, "4096": 1.051}};
