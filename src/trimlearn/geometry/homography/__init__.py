"""One homography from dirty matches."""
