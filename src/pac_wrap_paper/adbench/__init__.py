"""The study of ADBench: thresholds that people use, compared with thresholds that keep a promise."""
