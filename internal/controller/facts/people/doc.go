// Package people has the facts about people: who made a release, whose the changed files are, who
// reviewed a pull request, and who may. AuthorGatherer finds the commits that made a release, and the
// accounts behind them. ReviewGatherer says whose approvals count, and reads checks. TeamGatherer
// says who is in which team. CODEOWNERS is read here too.
//
// A fact that the forge can't tell says why, so that a gate waits with the reason. A failure that
// another try may mend is an error.
package people
