// Package forgetest is the contract that every forge driver passes, against the forge itself or an
// emulator of it: what package forge promises, case by case.
//
// A driver's test makes a [Backend] out of its forge and calls [Run]. The cases use the driver,
// real pushes and webhook deliveries over HTTP, and nothing particular to one forge. Where there is
// no network, a forge in memory has its own [Git]. No case relies on behaviour in which forges
// differ and that the contract leaves open, such as whether a push dismisses approvals.
//
// It is imported by tests only.
package forgetest
