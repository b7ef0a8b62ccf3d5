"""Lists of tile tasks run on one card or several: tiles stream from where matrices live and back."""
