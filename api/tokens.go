package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/persistence"
)

// Tokens of the store come beside those that the server was started with. Each member keeps the
// list of them, so that a request need not ask the store.

const (
	tokensAge   = 5 * time.Second // how old the list may be: so long is a token good with the members that did not delete it
	tokensWait  = 2 * time.Second // for the store to tell the list
	tokenUseAge = time.Minute     // how exactly it is known when one was used last
)

// storedTokens are those of the store, as they were when this member last looked.
type storedTokens struct {
	store persistence.Tokens
	age   time.Duration // how old the list may be
	turn  chan struct{} // whose turn it is to look, or to change something
	last  atomic.Pointer[tokenList]
}

type tokenList struct {
	at     time.Time
	byHash map[[sha256.Size]byte]*storedToken
	byID   map[string]*storedToken
}

// storedToken knows when it was last noted that it was used.
type storedToken struct {
	persistence.Token
	noted atomic.Int64
}

func newStoredTokens(store persistence.Tokens) *storedTokens {
	return &storedTokens{store: store, age: tokensAge, turn: make(chan struct{}, 1)}
}

// NewToken makes a token and its hash. Its text begins with letters by which those who search for
// secrets that were given away know it.
func NewToken() (text string, hash []byte) {
	var secret [32]byte
	rand.Read(secret[:]) // it never fails
	text = "trp_" + hex.EncodeToString(secret[:])
	sum := sha256.Sum256([]byte(text))
	return text, sum[:]
}

func (s *storedTokens) loadList(ctx context.Context) (*tokenList, error) {
	if l := s.last.Load(); s.isFresh(l) {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokensWait)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.turn }()
	if l := s.last.Load(); s.isFresh(l) {
		return l, nil
	}
	l := &tokenList{at: time.Now(), byHash: map[[sha256.Size]byte]*storedToken{}, byID: map[string]*storedToken{}}
	rows, err := s.store.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if len(row.Hash) != sha256.Size {
			continue // nobody of us has written it
		}
		t := &storedToken{Token: row}
		t.noted.Store(row.LastUsedAt)
		l.byHash[[sha256.Size]byte(row.Hash)], l.byID[row.ID] = t, t
	}
	s.last.Store(l)
	return l, nil
}

func (s *storedTokens) isFresh(l *tokenList) bool { return l != nil && time.Since(l.at) < s.age }

// changeTokens writes to the store what is to count here at once: nobody who looked before keeps a
// list from before.
func (s *storedTokens) changeTokens(ctx context.Context, write func(persistence.Tokens) error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	defer s.last.Store(nil)
	return write(s.store)
}

// findToken looks for a token that is good, and notes that it was used. nil = there is none.
func (s *storedTokens) findToken(ctx context.Context, in func(*tokenList) *storedToken) (*storedToken, error) {
	l, err := s.loadList(ctx)
	if err != nil {
		return nil, err
	}
	t, now := in(l), time.Now().UnixMilli()
	if !t.isValid(now) {
		return nil, nil
	}
	s.noteUse(ctx, t, now)
	return t, nil
}

func (t *storedToken) isValid(now int64) bool {
	return t != nil && (t.ExpiresAt == 0 || now < t.ExpiresAt)
}

// whileGood serves a request of who has a token of the store. One that stays, a stream say, is
// ended when its token is good no longer.
func (s *storedTokens) whileGood(next http.Handler, w http.ResponseWriter, r *http.Request, id string) {
	ctx, cancel := context.WithCancel(r.Context())
	var watching sync.WaitGroup
	defer watching.Wait() // nobody may touch w when this has returned
	defer cancel()
	watch := sync.OnceFunc(func() { watching.Go(func() { s.watchToken(ctx, cancel, w, id) }) })
	serveWith(stream.OnStay(ctx, watch), next, w, r)
}

func (s *storedTokens) watchToken(ctx context.Context, cancel context.CancelFunc, w http.ResponseWriter, id string) {
	tick := time.NewTicker(s.age)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l, err := s.loadList(ctx)
		if err != nil || l.byID[id].isValid(time.Now().UnixMilli()) {
			continue // without the store nobody can tell
		}
		cancel()
		conn := http.NewResponseController(w) // who reads what a client sends does not look at the context
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		_ = conn.SetWriteDeadline(time.Unix(1, 0)) // a WebSocket's connection is no longer the server's: it ends with the context
		return
	}
}

// noteUse writes down that a token was used, unless that was done a short while ago.
func (s *storedTokens) noteUse(ctx context.Context, t *storedToken, now int64) {
	before := t.noted.Load()
	if now-before < tokenUseAge.Milliseconds() || !t.noted.CompareAndSwap(before, now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = s.store.UseToken(ctx, t.ID, now) // a use that is not noted now is with the next look at the list
}

func (t *storedToken) toIdentity() Identity {
	return Identity{Name: t.Name, Role: Role(t.Role), Token: t.ID}
}

func byHash(token string) func(*tokenList) *storedToken {
	sum := sha256.Sum256([]byte(token))
	return func(l *tokenList) *storedToken { return l.byHash[sum] }
}

func byID(id string) func(*tokenList) *storedToken {
	return func(l *tokenList) *storedToken { return l.byID[id] }
}

// AddToken keeps a token in the store. It is good here at once, with other members within seconds.
func (s *Server) AddToken(ctx context.Context, t persistence.Token) error {
	return s.guard.stored.changeTokens(ctx, func(store persistence.Tokens) error { return store.AddToken(ctx, t) })
}

// DeleteToken takes it back: here at once, with other members within seconds.
func (s *Server) DeleteToken(ctx context.Context, id string) error {
	return s.guard.stored.changeTokens(ctx, func(store persistence.Tokens) error { return store.DeleteToken(ctx, id) })
}
