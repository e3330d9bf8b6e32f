// Package notify tells people and programs outside of the pull requests what happened:
// it reads the events that the store has, and sends those that a pipeline's file asks
// for to the channels of the server's file.
//
// The events are their own outbox: each channel has a place in their order that moves
// on only behind what was sent, so that nothing is lost when a process dies or a
// receiver is away, and what was under way is sent again. One process at a time sends
// to a channel, in order. What is older than a day isn't sent any more.
package notify
