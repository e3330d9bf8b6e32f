// Package sim runs the whole service in virtual time: the real webhook receiver, store, controller,
// facts, decision and actions, in several processes. They work over a repository, a forge and an
// Argo CD in memory, with simulated people and with faults everywhere. A seed is one world with its
// whole story; the same seed gives the same story again. A story that breaks a rule is shrunk to
// the steps that break it.
//
// One goroutine runs at a time. Each call of the service to the outside (a transaction, a call of
// the forge, of Git, of Argo CD) is a point at which the world may intervene. It may let the call
// wait, let it fail before or after the effect, kill its process, or let another one go on. Each
// process runs one key at a time, so the work of two processes is interleaved at every such point.
// Memory that two workers of one process share isn't covered.
//
// The world knows by itself which release is healthy where, who said what, and which bytes were
// where before. By that it judges the service: see rules.go.
package sim
