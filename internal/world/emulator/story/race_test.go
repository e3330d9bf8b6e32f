//go:build race

package story_test

// raceDetector makes programs several times slower.
const raceDetector = true
