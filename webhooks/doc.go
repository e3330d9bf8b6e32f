// Package webhooks receives what forges post when something happens: it verifies a delivery, then
// parses it into one neutral [Event].
//
// An event is a hint that says "look again at this repository, branch or pull request". It carries
// what a wake-up key needs and nothing to act on. The forge itself tells which files changed, who
// approved and what a comment says, because payloads are cut short, arrive late, twice or out of
// order. So a delivery that is lost, repeated or forged by a person who knows the secret costs a
// look, never a wrong decision.
//
// The invariant of this package: no byte of a body is interpreted before its signature has been
// checked, in constant time, against every configured secret. Whatever a body holds, reading it is
// bounded in bytes and time and does not panic. Before that check no sender, from anywhere and
// however slow, keeps the deliveries of others from being read (see [Budget]).
//
// A [Receiver] verifies and parses for one forge; [Handler] answers over HTTP and acknowledges an
// event only after it has been accepted, that is written down. Its callers decide what happens with
// an event afterwards.
package webhooks
