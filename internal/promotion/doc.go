// Package promotion is the only judge: facts about a component, or about several that move
// together, go in, a decision comes out. Decide is pure; the same facts give the same answer, and
// both sides marshal to JSON so that any decision can be replayed.
//
// It decides which release may move where, which gates stand in the way, when a degradation is this
// promotion's doing, and what is done about it. Other packages find the facts (controller/facts),
// carry out the actions (controller/act), and write the pull requests' texts (controller/prtext).
//
// The invariants are those of docs/promotion.md; property_test.go holds them over random worlds.
package promotion
