// Package stored has the values that the controller writes to the store and the console reads from
// it: one declaration each, so that neither has a copy of the other's. It decides nothing.
package stored
