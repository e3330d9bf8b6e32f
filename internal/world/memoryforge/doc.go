// Package memoryforge is a forge over repositories in memory: a driver and the service behind it in
// one process and without a network. It stands on git.MemoryRemote, behaves as GitHub does, and
// passes the drivers' contract in forgetest, so that code that runs against it runs against a real
// one.
//
// Forge.As gives the driver's view of an account. The methods of Forge itself are people's actions:
// push, review, comment, merge by hand. Both go the same way and are told through Options.OnEvent.
// A branch that moves without a word (a mirror has pushed) is noticed at the next call, or at once
// by NoticePush.
//
// It is for tests and simulations, never for a server: nothing is kept. Given the same calls at the
// same times it does the same, and it neither waits nor fails by itself. Tests that want delays and
// faults put them before its forge.Forge.
package memoryforge
