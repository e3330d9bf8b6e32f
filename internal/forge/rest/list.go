package rest

import (
	"fmt"

	"github.com/liftlock/liftlock/internal/forge"
)

// Bounds are how much is read of a list.
type Bounds struct {
	PerPage int
	Pages   int   // beyond, something is wrong, and an error is better than an hour of calls
	TooMany error // its kind
}

// Page is a part of a list.
type Page[T any] struct {
	Entries []T
	Next    int // the page behind it; 0: there is none
}

// ForEach reads a list page by page, until it ends or each has enough.
func ForEach[T any](op string, b Bounds, read func(page int) (Page[T], error), each func(T) (enough bool)) error {
	at := 1
	for range b.Pages {
		page, err := read(at)
		if err != nil {
			return Wrap(op, err)
		}
		for _, entry := range page.Entries {
			if each(entry) {
				return nil
			}
		}
		if page.Next == 0 {
			return nil
		}
		at = page.Next
	}
	return &forge.Error{Op: op, Kind: b.TooMany, Message: fmt.Sprintf("there are more than %d", b.Pages*b.PerPage)}
}
