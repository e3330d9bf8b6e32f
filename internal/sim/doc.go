// Package sim runs the whole service in virtual time: the real webhook receiver, store,
// controller, facts, decision and actions, several processes of them, over a repository,
// a forge and an Argo CD in memory, with people who do what people do and with faults
// everywhere. A seed is one world with all that happens in it; the same seed gives the
// same story again, and one that breaks a rule is shrunk to what is needed to break it.
//
// One goroutine runs at a time. What the service asks of the outside (a transaction, a
// call of the forge, of Git, of Argo CD) is a point at which the world may let it wait,
// let it fail before or after the effect, kill its process, or let another go on. Each
// process runs one key at a time, so that what two of them do is interleaved at every
// such point; what two workers of one process share in memory isn't.
//
// What the world knows by itself (which release is well where, who said what, which
// bytes were where before) judges what the service does: see rules.go.
package sim
