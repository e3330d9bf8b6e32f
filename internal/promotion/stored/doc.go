// Package stored has the values that the controller writes to the store and the console reads from
// it. Each is declared once, so that neither has a copy of the other's. It decides nothing.
package stored
