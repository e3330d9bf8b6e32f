package promotion

import (
	"slices"

	"github.com/liftlock/liftlock/policies"
)

// Liftlock's own conditions, which stand beside the pipeline's gates while they aren't met. Each is
// declared once, in ownGates: a new one has its line there and is evaluated in evaluateGates. A
// test holds that no other room spells one.
const (
	GatePipelineFile   policies.GateName = "pipeline-file"
	GateTargets        policies.GateName = "targets"
	GateHold           policies.GateName = "hold"
	GateOneEnvironment policies.GateName = "one-environment" // it changes no other
	GateMergeable      policies.GateName = "mergeable"       // the forge's own answer
	GateDiverged       policies.GateName = "diverged"        // nobody changed the environment by hand
	GateHead           policies.GateName = "head"            // the merged head is Liftlock's own
	GateBase           policies.GateName = "base"            // it is composed on what its branch has now
	GateReverting      policies.GateName = "reverting"
	GateVerifying      policies.GateName = "verifying"
	GateUpstream       policies.GateName = "upstream"
	GateClosed         policies.GateName = "closed" // no person closed the promotion
	GateBatch          policies.GateName = "together"
	GateIncomplete     policies.GateName = "incomplete"
	GateLimit          policies.GateName = "limit"
	GateRevertLimit    policies.GateName = "storm"
	GateDegraded       policies.GateName = "degraded" // a revert only goes on while there is something to take back
	GateEffect         policies.GateName = "effect"   // what it carries shows in the rendered manifests of its targets
)

// ownGate is what the other rooms need of one of them.
type ownGate struct {
	name  policies.GateName
	words policies.GateWords
	// mergedPast says that a person who merges while it isn't met goes past it. Others say what the
	// forge, or the next look, is about to change.
	mergedPast bool
	// promoteHelps says that its remedy is the command that promotes the release.
	promoteHelps bool
	// passing says that it is Liftlock's own work, done within moments: it is listed while it lasts, and is no
	// headline.
	passing bool
}

const (
	byItself         = "by itself"
	byItselfWhenWell = "by itself, when the targets are well; `/liftlock why` shows them"
)

var ownGates = []ownGate{
	{name: GatePipelineFile, mergedPast: true, words: policies.GateWords{WaitsFor: "a working pipeline file",
		Remedy: "a commit that mends the pipeline file"}},
	{name: GateTargets, words: policies.GateWords{WaitsFor: "its targets",
		Remedy: "a commit that mends the ApplicationSets or the pipeline file"}},
	{name: GateHold, mergedPast: true, words: policies.GateWords{WaitsFor: "the hold", Remedy: "`/liftlock unhold`, as the reason says"}},
	{name: GateOneEnvironment, mergedPast: true, words: policies.GateWords{WaitsFor: "proof that it changes no other environment"}},
	{name: GateMergeable, words: policies.GateWords{WaitsFor: "the forge", Remedy: "the forge: its checks and branch protection"}},
	{name: GateDiverged, mergedPast: true, promoteHelps: true,
		words: policies.GateWords{WaitsFor: "a decision about a change by hand"}},
	{name: GateHead},
	{name: GateBase, passing: true, words: policies.GateWords{WaitsFor: "being composed anew", Remedy: "Liftlock, by itself"}},
	{name: GateReverting, mergedPast: true, words: policies.GateWords{WaitsFor: "the open revert",
		Remedy: "merging or closing the revert"}},
	{name: GateVerifying, words: policies.GateWords{WaitsFor: "what is there to be verified", Remedy: byItselfWhenWell}},
	{name: GateUpstream, mergedPast: true, words: policies.GateWords{WaitsFor: "upstream to be well", Remedy: byItselfWhenWell}},
	{name: GateClosed, mergedPast: true, promoteHelps: true,
		words: policies.GateWords{WaitsFor: "a decision about a promotion that a person closed"}},
	{name: GateBatch, words: policies.GateWords{WaitsFor: "what came along upstream", Remedy: byItselfWhenWell}},
	{name: GateIncomplete, mergedPast: true, words: policies.GateWords{WaitsFor: "the rest of the release"}},
	{name: GateLimit, words: policies.GateWords{WaitsFor: "the limit of merges", Remedy: byItself}},
	{name: GateRevertLimit, mergedPast: true, words: policies.GateWords{WaitsFor: "the reverts to end"}},
	{name: GateDegraded, words: policies.GateWords{WaitsFor: "a person's decision", Remedy: "a person: merge it or close it"}},
	{name: GateEffect, mergedPast: true, words: policies.GateWords{WaitsFor: "its effect in the rendered manifests"}},
}

func findOwnGate(name policies.GateName) (g ownGate, found bool) {
	if i := slices.IndexFunc(ownGates, func(g ownGate) bool { return g.name == name }); i >= 0 {
		return ownGates[i], true
	}
	return ownGate{}, false
}

// WordsOfGate are what is said to people of what waits at a gate: Liftlock's own, or the pipeline's.
func WordsOfGate(name policies.GateName) policies.GateWords {
	if g, own := findOwnGate(name); own {
		return g.words
	}
	return name.Words()
}

// PromoteHelps says that what waits at a gate goes on by the command that promotes it.
func PromoteHelps(name policies.GateName) bool {
	g, _ := findOwnGate(name)
	return g.promoteHelps
}

// IsMergedPast says that a person who merges what waits at a gate goes past it.
func IsMergedPast(name policies.GateName) bool {
	g, own := findOwnGate(name)
	return g.mergedPast || !own && slices.Contains(policies.Kinds(), name)
}

// addGate lists a condition that isn't met.
type addGate func(gate policies.GateName, o policies.Outcome, reason string)
