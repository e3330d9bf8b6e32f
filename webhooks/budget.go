package webhooks

import (
	"container/list"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// SmallBody is the size in bytes up to which a delivery is small. Small ones
	// have room of their own, so that large ones can't keep them out; nearly all
	// deliveries are (GitHub's pull_request takes 25 kB).
	SmallBody = 128 << 10

	// MinLargeRoom is the least that the room for large bodies may hold. Reading a delivery of the
	// largest size takes room for it twice while the buffer grows, and one client gets half.
	MinLargeRoom = 4 * MaxBody

	// MinSmallRoom lets a hundred small deliveries in at once, half of them of one client.
	MinSmallRoom = 200 * SmallBody

	// DefaultSmallRoom and DefaultLargeRoom are a budget's rooms unless it is told others.
	// Strangers that send at 100 Mbit/s fill buffers twice as large as their bodies. Even then a
	// small body keeps its place for at least 2.5 s and a large one for 4.
	DefaultSmallRoom = 64 << 20
	DefaultLargeRoom = MinLargeRoom

	// maxReading is how many bodies are read at once, and maxReadingOfClient how
	// many of one client: whatever their size, each holds a connection.
	maxReading         = 4096
	maxReadingOfClient = maxReading / 2
)

// BudgetOptions are how much bodies may take. The zero value is production's.
type BudgetOptions struct {
	SmallRoom int64 // bytes for bodies up to SmallBody; 0: DefaultSmallRoom
	LargeRoom int64 // bytes for larger ones; 0: DefaultLargeRoom
	// Client says whose request it is, in any form; nil: the address that the
	// connection comes from, which is the proxy's where there is one in front.
	Client func(*http.Request) string
	Now    func() time.Time // nil: time.Now
}

// Budget caps the room for bodies whose sender isn't known yet, across all receivers that share it.
// Room is taken as bytes arrive, not as a sender announces them.
//
// Slow senders keep no others out. Where there is no room (or a client has its half of it), the
// body that has been read for longest gives way to the one that needs the room. An authentic
// delivery is read in a fraction of a second. So a sender that wants to push it out must send a
// whole room's bytes within that time, from anywhere. That may be the same address, as when all
// come through one proxy. Safe for concurrent use.
type Budget struct {
	client func(*http.Request) string
	now    func() time.Time

	buffers bufferPools

	mu           sync.Mutex
	small, large room
	reading      queue
	byClient     map[string]*queue
}

// room is memory for one size of bodies.
type room struct {
	max, used int64
	members   queue
	byClient  map[string]*clientRoom
}

// clientRoom is what one client has of a room.
type clientRoom struct {
	used    int64
	members queue
}

// NewBudget makes a budget. Rooms that are too small for the largest delivery are an error.
func NewBudget(o BudgetOptions) (*Budget, error) {
	if o.SmallRoom == 0 {
		o.SmallRoom = DefaultSmallRoom
	}
	if o.LargeRoom == 0 {
		o.LargeRoom = DefaultLargeRoom
	}
	if o.SmallRoom < MinSmallRoom || o.LargeRoom < MinLargeRoom {
		return nil, fmt.Errorf("a budget of %d bytes for small and %d for large webhook bodies is too small: at least %d and %d",
			o.SmallRoom, o.LargeRoom, MinSmallRoom, MinLargeRoom)
	}
	if o.Client == nil {
		o.Client = peerOf
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Budget{client: o.Client, now: o.Now, byClient: map[string]*queue{},
		small: room{max: o.SmallRoom, byClient: map[string]*clientRoom{}}, large: room{max: o.LargeRoom,
			byClient: map[string]*clientRoom{}}}, nil
}

// peerOf is the address that a request's connection comes from.
func peerOf(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	return host
}

// queue holds bodies that are being read, the one that began first in front.
type queue struct{ list.List }

// oldest is the one in front; nil when there is none.
func (q *queue) oldest() *pendingBody {
	if f := q.Front(); f != nil {
		return f.Value.(*pendingBody)
	}
	return nil
}

// insertByAge keeps the order also for a body that comes over from another queue.
func (q *queue) insertByAge(p *pendingBody) *list.Element {
	for e := q.Back(); e != nil; e = e.Prev() {
		if !e.Value.(*pendingBody).started.After(p.started) {
			return q.InsertAfter(p, e)
		}
	}
	return q.PushFront(p)
}

// pendingBody is a body whose sender isn't known yet, and what it takes.
type pendingBody struct {
	budget  *Budget
	client  string
	started time.Time

	// Under the budget's lock.
	room     *room // nil: it takes no room yet
	reserved int64
	trusted  bool          // its signature has been checked: it doesn't give way any more
	places   []removeEntry // where it stands in queues
	inRoom   []removeEntry

	// mu is for what happens to its connection.
	mu          sync.Mutex
	isOver      bool
	displaced   bool
	setDeadline func(time.Time)
}

// removeEntry takes a body out of one queue.
type removeEntry func()

// admit begins a body. The body that has been read for longest gives way where there are too many.
// release must be called.
func (b *Budget) admit(req *http.Request, setDeadline func(time.Time)) *pendingBody {
	p := &pendingBody{budget: b, client: b.client(req), started: b.now(), setDeadline: setDeadline}
	b.mu.Lock()
	var displaced []*pendingBody
	if of := b.byClient[p.client]; of != nil && of.Len() >= maxReadingOfClient {
		displaced = append(displaced, b.displace(of.oldest()))
	}
	if b.reading.Len() >= maxReading {
		displaced = append(displaced, b.displace(b.reading.oldest()))
	}
	of := b.byClient[p.client]
	if of == nil {
		of = &queue{}
		b.byClient[p.client] = of
	}
	one, all := of.PushBack(p), b.reading.PushBack(p)
	p.places = []removeEntry{func() {
		of.Remove(one)
		if of.Len() == 0 {
			delete(b.byClient, p.client)
		}
	}, func() { b.reading.Remove(all) }}
	b.mu.Unlock()
	interruptAll(displaced)
	return p
}

// reserve takes room for n further bytes of p, among the large bodies or the small
// ones. It is false when p itself has to give way.
func (b *Budget) reserve(p *pendingBody, n int64, large bool) bool {
	b.mu.Lock()
	ok, displaced := b.tryReserve(p, n, large)
	b.mu.Unlock()
	interruptAll(displaced)
	return ok
}

func (b *Budget) tryReserve(p *pendingBody, n int64, large bool) (ok bool, displaced []*pendingBody) {
	if len(p.places) == 0 && !p.trusted {
		return false, nil // displaced in the meantime
	}
	to := &b.small
	if large {
		to = &b.large
	}
	need := n
	if p.room != to {
		need += p.reserved
	}
	for q := to.fullQueue(p, need); q != nil; q = to.fullQueue(p, need) {
		victim := q.oldest()
		if victim == nil || victim == p {
			return false, displaced
		}
		displaced = append(displaced, b.displace(victim))
	}
	if p.room != to {
		moved := p.reserved
		p.leaveRoom()
		p.enterRoom(to)
		p.addReserved(moved)
	}
	p.addReserved(n)
	return true, displaced
}

// fullQueue gives the queue of bodies of which one must give way before p can have that many bytes.
// It is its client's, which has its half of the room, or everybody's. nil: there is room. Trusted
// bodies are read already and may have more than half.
func (r *room) fullQueue(p *pendingBody, need int64) *queue {
	if of := r.byClient[p.client]; of != nil && !p.trusted && of.used+need > r.max/2 {
		return &of.members
	}
	if r.used+need > r.max {
		return &r.members
	}
	return nil
}

func (p *pendingBody) enterRoom(r *room) {
	of := r.byClient[p.client]
	if of == nil {
		of = &clientRoom{}
		r.byClient[p.client] = of
	}
	p.room = r
	if p.trusted {
		return
	}
	one, all := of.members.insertByAge(p), r.members.insertByAge(p)
	p.inRoom = []removeEntry{func() { of.members.Remove(one) }, func() { r.members.Remove(all) }}
}

func (p *pendingBody) addReserved(n int64) {
	p.reserved += n
	p.room.used += n
	p.room.byClient[p.client].used += n
}

// leaveRoom gives back what p takes of its room.
func (p *pendingBody) leaveRoom() {
	if p.room == nil {
		return
	}
	removeAll(&p.inRoom)
	r, of := p.room, p.room.byClient[p.client]
	r.used -= p.reserved
	of.used -= p.reserved
	if of.used == 0 && of.members.Len() == 0 {
		delete(r.byClient, p.client)
	}
	p.room, p.reserved = nil, 0
}

func removeAll(entries *[]removeEntry) {
	for _, remove := range *entries {
		remove()
	}
	*entries = nil
}

// displace takes everything from a body; its reader must be interrupted then.
func (b *Budget) displace(p *pendingBody) *pendingBody {
	removeAll(&p.places)
	p.leaveRoom()
	return p
}

// interruptAll ends the reading of bodies that gave way: without the budget's lock,
// because a connection may take its time.
func interruptAll(displaced []*pendingBody) {
	for _, p := range displaced {
		p.mu.Lock()
		if !p.isOver {
			p.displaced = true
			p.setDeadline(time.Unix(1, 0)) // long past
		}
		p.mu.Unlock()
	}
}

// trust keeps a body whose signature was checked from giving way.
func (p *pendingBody) trust() {
	p.budget.mu.Lock()
	defer p.budget.mu.Unlock()
	removeAll(&p.places)
	removeAll(&p.inRoom)
	p.trusted = true
}

// reserveMore takes further room beside what p has, of the same kind.
func (p *pendingBody) reserveMore(n int) bool {
	return p.budget.reserve(p, int64(n), p.room == &p.budget.large)
}

// giveBack returns n bytes of what p reserved.
func (p *pendingBody) giveBack(n int64) {
	b := p.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.room != nil { // else it was displaced, and has nothing
		p.addReserved(-n)
	}
}

// release gives all room back.
func (p *pendingBody) release() {
	p.stopReading()
	p.budget.mu.Lock()
	defer p.budget.mu.Unlock()
	removeAll(&p.places)
	p.leaveRoom()
}

// extend moves the deadline of p's connection; false when p has given way.
func (p *pendingBody) extend(deadline time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.displaced {
		return false
	}
	p.setDeadline(deadline)
	return true
}

// stopReading leaves the connection alone from now on, because it goes on to its next request. It
// removes the deadline, which would end the work on the body.
func (p *pendingBody) stopReading() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isOver {
		p.isOver = true
		p.setDeadline(time.Time{})
	}
}

func (p *pendingBody) isDisplaced() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.displaced
}
