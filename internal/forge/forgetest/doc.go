// Package forgetest is the contract that every forge driver passes, against the
// forge itself or an emulator of it: what package forge promises, case by case.
//
// A driver's test makes a [Backend] out of its forge and calls [Run]. The cases use
// the driver, real pushes and webhook deliveries over HTTP (where there is a network;
// a forge in memory has its own [Git]), and nothing that is particular to one forge:
// what forges do differently and the contract leaves open (whether a push dismisses
// approvals, say) no case relies on.
//
// It is imported by tests only.
package forgetest
