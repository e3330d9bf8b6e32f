package forge

// MissedDelivery is a delivery of a webhook that wasn't taken, as the forge remembers it: a
// hint at what to look at, never something to act on.
type MissedDelivery struct {
	ID      string // the forge's identity of the delivery, as the delivery itself has it; the same when it is sent again
	Event   string // the forge's name for it, as the delivery has it
	Payload []byte // as it was sent, or cut, or something else instead; empty: it wasn't read
	Answer  string // what the forge was answered, for people: "503"
}

// MissedDeliveries are those that the forge remembers since a look before.
type MissedDeliveries struct {
	Deliveries []MissedDelivery // each once, newest first
	// Incomplete says that there may be more: others that weren't read, or what the forge
	// never tried to send and so doesn't list.
	Incomplete bool
	// Cursor says how far was read. It means something to the driver only.
	Cursor string
}

// DeliveryQuery says which deliveries are wanted.
type DeliveryQuery struct {
	URL     string                     // of the webhook
	Cursor  string                     // MissedDeliveries.Cursor of the look before; empty, or unreadable: there was none
	IsKnown func(delivery string) bool // says whether one was taken although the forge thinks that it wasn't, or was found missing before
}
