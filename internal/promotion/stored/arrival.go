package stored

import (
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Arrival is what arrived in an environment (a store.Arrival's data).
type Arrival struct {
	Content fieldedit.Release `json:"content"`
	By      string            `json:"by"`
	Author  string            `json:"author,omitempty"` // of a person's change
	Pull    int               `json:"pull,omitempty"`
	Soak    promotion.Soak    `json:"soak,omitzero"`
}
