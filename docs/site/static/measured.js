/* Made by bench/report_rivals.py from bench/results. */
const measured = {"machine": "NVIDIA H200", "commit": "1c60bbb", "d": 65536, "n": 1024, "gigabytes_per_second": 4223, "ratio": {"64": 1.155, "256": 1.389, "512": 1.361, "1024": 1.336, "2048": 1.261, "4096": 1.228}};
