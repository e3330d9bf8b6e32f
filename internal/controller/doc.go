// Package controller is the loop: claim a key, look, decide, act, record what happened. It is
// level-based: a key says where to look again, never what happened there. So an event that is lost,
// repeated, late or out of order changes nothing but latency.
//
// The keys: "repo:" fetches, resolves and wakes the units that changed. "unit:" judges one
// component. "pr:" reads one pull request again and takes the commands in it. "merge:", one a
// repository, judges again and merges, one after the other. "sweep:" evaluates every open unit, so
// that a lost webhook costs time and not correctness. "onboard:" proposes a pipeline file. "discover:" brings
// in new tags and versions.
package controller
