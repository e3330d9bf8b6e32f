//go:build race

package sandbox

// raceDetector takes more memory than any limit would leave.
const raceDetector = true
