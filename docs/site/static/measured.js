/* Made by bench/report_rivals.py from bench/results. */
const measured = {"machine": "NVIDIA H200", "commit": "c667095", "d": 65536, "n": 1024, "gigabytes_per_second": 4308, "ratio": {"64": 1.184, "256": 1.39, "512": 1.386, "1024": 1.325, "2048": 1.261, "4096": 1.22}};
