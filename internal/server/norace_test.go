//go:build !race

package server_test

// raceDetector makes programs several times slower.
const raceDetector = false
