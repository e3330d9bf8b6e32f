package console

import "github.com/liftlock/liftlock/internal/promotion"

// unitKey is the unit's key in the store.
func unitKey(u promotion.Unit) string { return u.Repo + "|" + u.Pipeline + "|" + u.Component }
