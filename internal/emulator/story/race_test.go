//go:build race

package demo_test

// raceDetector makes programs several times slower.
const raceDetector = true
