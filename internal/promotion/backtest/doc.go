// Package backtest keeps what happened to a component in few bytes, and replays it through
// promotion.Decide under other rules. It is pure: the store keeps the changes, and others read them.
//
// A record is what the facts said, as it changed: a State, and the Changes that lead to it. NextChange
// finds the change at a look, Trace.States walks through them. What Liftlock does itself is in there by
// its results alone, so that a replay finds it again: nothing but Decide judges.
package backtest
