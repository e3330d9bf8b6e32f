// Package notify tells people and programs outside of the pull requests what happened. It reads the
// store's events, and sends those that a pipeline's file asks for to the channels of the server's
// file.
//
// The events are their own outbox. Each channel has a place in their order that moves on only
// behind sent ones. So nothing is lost when a process dies or a receiver is away, and a message
// that was under way is sent again. One process at a time sends to a channel, in order. Events
// older than a day aren't sent any more.
package notify
