//go:build race

package evaluate

// raceDetector takes more memory than any limit would leave.
const raceDetector = true
