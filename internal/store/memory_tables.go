package store

// memoryTables are what a database in memory holds.
type memoryTables struct {
	arrivals     memoryTable[Arrival]
	audit        memoryTable[Audit]
	commands     memoryTable[PendingCommand]
	cursors      memoryTable[memoryCursor]
	deliveries   memoryTable[Delivery]
	events       memoryTable[Event]
	observations memoryTable[Observation]
	pastPulls    memoryTable[memoryPastPull]
	promotions   memoryTable[Promotion]
	pulls        memoryTable[Pull]
	queue        memoryTable[memoryQueued]
	records      memoryTable[Record]
	sessions     memoryTable[BrowserSession]
	slots        memoryTable[memorySlot]
	units        memoryTable[Unit]
	versions     memoryTable[memoryVersion]
	wakes        memoryTable[memoryWake]

	last lastNumbers
}

// lastNumbers are the numbers that were given last. Those of a transaction that fails
// are given again.
type lastNumbers struct{ audit, command, event, pastPull, promotion, queued, wake int64 }

// byKey is the first order of every table.
const byKey = 0

func newMemoryTables() *memoryTables {
	return &memoryTables{
		arrivals: newMemoryArrivals(), audit: newMemoryAudit(), commands: newMemoryCommands(), cursors: newMemoryCursors(),
		deliveries: newMemoryDeliveries(),
		events:     newMemoryEvents(), observations: newMemoryObservations(), pastPulls: newMemoryPastPulls(),
		promotions: newMemoryPromotions(), pulls: newMemoryPulls(),
		queue: newMemoryQueue(), sessions: newMemoryBrowserSessions(), slots: newMemorySlots(), records: newMemoryRecords(),
		units: newMemoryUnits(), versions: newMemoryVersions(), wakes: newMemoryWakes(),
	}
}

// begin is a copy for one transaction.
func (m *memoryTables) begin() *memoryTables {
	own := *m
	for _, table := range []interface{ share() }{&own.arrivals, &own.audit, &own.commands, &own.cursors, &own.deliveries, &own.events,
		&own.observations, &own.pastPulls,
		&own.promotions, &own.pulls, &own.queue, &own.sessions, &own.slots, &own.records, &own.units, &own.versions, &own.wakes} {
		table.share()
	}
	return &own
}
