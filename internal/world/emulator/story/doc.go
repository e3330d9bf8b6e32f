// Package story tells Liftlock's main job as a story on embedded parts. An image that is pushed to a
// registry comes into dev by itself and goes through qa to prod, and a release that only fails in qa
// is reverted there. The world is
// internal/world/emulator's; the same server that "liftlock serve" runs moves the releases.
//
// The story is told from outside: it acts as people do and reads what they see. So the same story
// is told while the server is killed again and again, in the tests of internal/demo.
package story
