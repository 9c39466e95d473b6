package cluster

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAProofLetsInOnceAndAtItsTime(t *testing.T) {
	s := newStage(t, "a")
	s.ahead = 24 * time.Hour
	now := time.Now().Add(s.ahead)
	over := peerTransport(nil)
	defer over.CloseIdleConnections()
	ask := func(h http.Header) int {
		req := post(t, s.members["a"].server.URL+deliverPath)
		for name, value := range h {
			req.Header[name] = value
		}
		return sent(t, over, req)
	}
	said := http.Header{}
	ours.signRequest(said, "a", now)
	require.Equal(t, http.StatusOK, ask(said))
	require.Equal(t, http.StatusUnauthorized, ask(said), "who overheard it does not get in with it")
	require.Equal(t, 1, s.log.count("was used before"))
	for _, wrong := range []time.Duration{-2 * proofAge, 2 * proofAge, -s.ahead} {
		said = http.Header{}
		ours.signRequest(said, "a", now.Add(wrong))
		require.Equal(t, http.StatusUnauthorized, ask(said), wrong)
	}
	for _, header := range []string{clusterHeader, toHeader, onceHeader, proofHeader} {
		said = http.Header{}
		ours.signRequest(said, "a", now)
		said.Set(header, said.Get(header)+"x")
		require.Equal(t, http.StatusUnauthorized, ask(said), header)
	}
	require.Empty(t, s.members["a"].effects)
}

func TestUsedProofsAreRememberedForAsLongAsTheyAreGood(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	o := newUsedProofs(func() time.Time { return now })
	said := http.Header{}
	ours.signRequest(said, "a", now.Add(proofAge)) // from a member whose clock is ahead
	require.True(t, o.isFirstUse(said.Get(onceHeader)))
	for range 6 {
		now = now.Add(proofAge / 3)
		for range 100 {
			said := http.Header{}
			ours.signRequest(said, "a", now)
			require.True(t, o.isFirstUse(said.Get(onceHeader)))
		}
		require.False(t, o.isFirstUse(said.Get(onceHeader)))
	}
	now = now.Add(10 * proofAge)
	for range 2 {
		ours.signRequest(said, "a", now)
		require.True(t, o.isFirstUse(said.Get(onceHeader)))
		now = now.Add(3 * proofAge)
	}
	require.LessOrEqual(t, len(o.young)+len(o.old), 3, "others are forgotten")
}

func TestWithoutASecretNoProofIsValid(t *testing.T) {
	s := newStage(t, "a")
	id := Identity{Cluster: "test", Incarnation: "a"}
	server := httptest.NewUnstartedServer(NewService(s.members["a"], id, s.logger()))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	peers := NewPeers(id, nil, s.logger())
	defer peers.Close()
	_, err := peers.Ask(soon(t), persistence.MemberRow{Incarnation: "a", URL: server.URL}, &engine.Orders{signal(s.taskOf("a"))})
	require.ErrorContains(t, err, "wrong or missing")
}

// An impostor has the address that a member had, and answers like one.
func TestAnImpostorGetsNoRequestsAndIsNotBelieved(t *testing.T) {
	s := newStage(t, "a", "b")
	var mu sync.Mutex
	var heard bytes.Buffer
	var begun, ended int // requests whose bodies are read to the end, which outlasts their server
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"as a member": func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			begun++
			mu.Unlock()
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			_ = r.Header.Write(&heard)
			heard.Write(body)
			ended++
		},
		"with the asker's own proof": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			w.Header().Set(proofHeader, r.Header.Get(proofHeader))
		},
		"by sending it elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, s.members["b"].server.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			impostor := httptest.NewUnstartedServer(http.HandlerFunc(answer))
			impostor.Config.Protocols = new(http.Protocols)
			impostor.Config.Protocols.SetUnencryptedHTTP2(true)
			impostor.Start()
			defer impostor.Close()
			peers := NewPeers(ours, nil, s.logger())
			defer peers.Close()
			to := persistence.MemberRow{Incarnation: "b", Name: "b", URL: impostor.URL}
			order := signal(s.taskOf("b"))
			order.Command = flow.Signal{Key: "confidential", Value: []byte("1")}
			_, err := peers.Ask(soon(t), to, &engine.Orders{order})
			require.ErrorIs(t, err, ErrAway)
			for _, err := range peers.Watch(soon(t), to, engine.Follow{Task: "t"}) {
				require.ErrorIs(t, err, ErrAway)
			}
		})
	}
	require.Empty(t, s.members["b"].effects)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return begun > 0 && begun == ended
	}, time.Minute, time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, heard.String())
	require.NotContains(t, heard.String(), ours.Secret)
	require.NotContains(t, heard.String(), "confidential")
}
