//go:build !race

package console

// raceDetector makes programs several times slower.
const raceDetector = false
