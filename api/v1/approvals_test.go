package v1_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

const twoAsk = `{"mode":"dag","nodes":{
	"a":{"kind":"subflow","flow":{"start":"ask","nodes":{"ask":{"kind":"approval","params":{"approval_key":"$shared.ok","title":"Ship the first?","show":["$params.n"]}}}}},
	"b":{"kind":"subflow","flow":{"start":"ask","nodes":{"ask":{"kind":"approval","params":{"approval_key":"$shared.ok","title":"Ship the second?","text":"It is heavy.","assignees":["ada"],
		"form":{"type":"object","required":["crates"],"properties":{"crates":{"type":"integer","maximum":9}}}}}}}}}}`

// asked starts a task that asks twice, and returns its open approvals by title.
func (s *server) asked() (task string, open map[string]obj) {
	task = s.call(201, "POST", "/v1/tasks", obj{"flow": s.publish(twoAsk), "params": obj{"n": 7}})["id"].(string)
	found := s.until("/v1/approvals?q="+task, func(v obj) bool { return len(v["items"].([]any)) == 2 })
	open = map[string]obj{}
	for _, item := range found["items"].([]any) {
		open[item.(obj)["title"].(string)] = item.(obj)
	}
	return task, open
}

func TestApprovalsAreListedReadAndAnsweredOneByOne(t *testing.T) {
	onBothStores(t, func(s *server) {
		task, open := s.asked()
		_, others := s.asked()
		first, second := open["Ship the first?"], open["Ship the second?"]
		at := "/v1/approvals/" + second["id"].(string)
		require.Len(t, s.get("/v1/approvals")["items"], 4)
		require.Len(t, s.get("/v1/approvals?q=SECOND")["items"], 2)
		page := s.get("/v1/approvals?limit=3")
		require.Len(t, s.get("/v1/approvals?limit=3&cursor=" + page["next"].(string))["items"], 1)
		mine := s.get("/v1/approvals?flow=" + first["flow"].(string))["items"].([]any)
		require.Len(t, mine, 2)
		s.refused(404, "query.flow", "GET", "/v1/approvals?flow=nobody", nil)
		s.refused(404, "path.approval", "GET", "/v1/approvals/x", nil)

		q := s.get(at)
		require.Equal(t, []any{"It is heavy.", []any{"ada"}, "open", nil}, []any{q["text"], q["assignees"], q["state"], q["actions"]})
		require.Equal(t, 9.0, q["form"].(obj)["properties"].(obj)["crates"].(obj)["maximum"])
		q = s.get("/v1/approvals/" + first["id"].(string))
		require.Equal(t, []any{obj{"name": "n", "ref": "$params.n", "value": 7.0}}, q["values"])
		require.Equal(t, []any{"approved", "rejected"}, q["actions"])

		s.refused(400, "body.value.crates", "POST", at, obj{"value": obj{"crates": 10}})
		s.refused(400, "body.value", "POST", at, obj{"value": 3})
		s.refused(400, "body", "POST", at, obj{"action": "approved"})
		answer := obj{"value": obj{"crates": 3}, "answered_by": "ada", "comment": "carefully"}
		got := s.call(200, "POST", at, answer)
		require.Equal(t, []any{"answered", "ada", "carefully", true},
			[]any{got["state"], got["answered_by"], got["comment"], got["accepted"]})
		require.Equal(t, true, s.call(200, "POST", at, answer)["accepted"], "the same request may be sent again")
		differs := obj{"value": obj{"crates": 4}, "answered_by": "ada", "comment": "carefully"}
		require.Equal(t, false, s.call(200, "POST", at, differs)["accepted"], "that is another answer")
		later := s.call(200, "POST", at, obj{"value": obj{"crates": 4}, "answered_by": "bo"})
		require.Equal(t, []any{"ada", got["ended_at"], false}, []any{later["answered_by"], later["ended_at"], later["accepted"]})
		require.Equal(t, []any{first["id"]}, values(s.get("/v1/approvals?q="+task), "id"), "the other one waits on")

		s.call(200, "POST", "/v1/approvals/"+first["id"].(string), obj{"action": "reject"})
		s.ended(task, "completed")
		var told []any
		for _, e := range s.get("/v1/tasks/" + task + "/events?limit=500")["items"].([]any) {
			if e := e.(obj); e["type"] == "signal_received" {
				told = append(told, e["sent_by"], e["status_text"], e["node"])
			}
		}
		require.Equal(t, []any{"ada", "carefully", "ask", nil, nil, "ask"}, told)
		require.Equal(t, "rejected", s.get("/v1/approvals/" + first["id"].(string))["action"])
		require.Len(t, s.get("/v1/approvals?state=answered")["items"], 2)

		other := others["Ship the first?"]
		s.call(200, "POST", "/v1/tasks/"+other["task"].(string)+"/cancel", nil)
		s.refused(409, "path.approval", "POST", "/v1/approvals/"+other["id"].(string), obj{"action": "approved"})
		require.Len(t, s.get("/v1/approvals?state=ended")["items"], 2)
		require.Empty(t, s.get("/v1/approvals")["items"])
	})
}

func TestApprovalsAreCheckedAtPublish(t *testing.T) {
	s := start(t)
	got := s.call(200, "POST", "/v1/validate", obj{"start": "ask", "nodes": obj{"ask": obj{"kind": "approval", "params": obj{
		"approval_key": "$shared.ok", "title": 7, "form": obj{"type": "nothing"}, "show": []any{"$elsewhere"}, "assignees": "ada"}}}})
	paths := []string{}
	for _, p := range got["problems"].([]any) {
		paths = append(paths, p.(obj)["path"].(string))
	}
	all := strings.Join(paths, "\n")
	for _, name := range []string{"title", "form.type", "show[0]", "assignees"} {
		require.Contains(t, all, "nodes.ask.params."+name)
	}
}

func TestALinkAnswersOneApprovalUntilItExpires(t *testing.T) {
	s := start(t, func(set *settings) { set.Tokens = []string{"secret"} })
	s.http.Transport = withToken{s.http.Transport}
	_, open := s.asked()
	first, second := open["Ship the first?"]["id"].(string), open["Ship the second?"]["id"].(string)
	link := s.call(200, "POST", "/v1/approvals/"+first+"/link", obj{"name": "Bo"})
	token := link["token"].(string)
	require.Equal(t, "/ui/approve/"+first+"#"+token, link["path"])
	expiring := s.call(200, "POST", "/v1/approvals/"+first+"/link", obj{"name": "Cy", "expires_in_ms": 1000})["token"].(string)
	s.http.Transport = s.http.Transport.(withToken).RoundTripper

	at := "/v1/approve/" + first
	terms, signed, _ := strings.Cut(token, ".")
	for _, wrong := range []string{"", "x", token + "A", terms + ".", "A" + token, expiring[:len(terms)] + "." + signed} {
		s.refused(401, "header.Troupe-Link", "GET", at, nil, "Troupe-Link", wrong)
	}
	s.refused(401, "header.Troupe-Link", "POST", "/v1/approve/"+second, obj{"value": obj{"crates": 1}}, "Troupe-Link", token)
	require.Equal(t, 401, s.send("GET", "/v1/approvals/"+first, nil, "Troupe-Link", token).status, "a link is no token")
	require.Eventually(t, func() bool {
		return strings.Contains(string(s.send("GET", at, nil, "Troupe-Link", expiring).body), "expired")
	}, time.Minute, 50*time.Millisecond)
	s.refused(401, "header.Troupe-Link", "POST", at, obj{"action": "approved"}, "Troupe-Link", expiring)

	q := s.call(200, "GET", at, nil, "Troupe-Link", token)
	require.Equal(t, []any{"Bo", "open"}, []any{q["name"], q["state"]})
	got := s.call(200, "POST", at, obj{"action": "approved", "answered_by": "somebody else"}, "Troupe-Link", token)
	require.Equal(t, "Bo", got["answered_by"], "who answers by a link is who it was made for")
}

func TestALinkIsGoodAsLongAsTheTokenThatMadeIt(t *testing.T) {
	s := start(t, func(set *settings) { set.Tokens = []string{"secret"} })
	admin := s.as("secret")
	ada, err := admin.CreateToken(t.Context(), wire.TokenRequest{Name: "ada", Role: "approver"})
	require.NoError(t, err)
	s.http.Transport = withToken{s.http.Transport}
	_, open := s.asked()
	s.http.Transport = s.http.Transport.(withToken).RoundTripper
	id := open["Ship the first?"]["id"].(string)
	link, err := s.as(ada.Secret).LinkApproval(t.Context(), id, wire.LinkRequest{Name: "Bo"})
	require.NoError(t, err)
	q := s.call(200, "GET", "/v1/approve/"+id, nil, "Troupe-Link", link.Token)
	require.Equal(t, "ada for Bo", q["name"])
	_, err = admin.DeleteToken(t.Context(), "ada")
	require.NoError(t, err)
	s.refused(401, "header.Troupe-Link", "POST", "/v1/approve/"+id, obj{"action": "approved"}, "Troupe-Link", link.Token)
}

// withToken is a client that sends a token.
type withToken struct{ http.RoundTripper }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer secret")
	return w.RoundTripper.RoundTrip(r)
}

// askAgain asks before each payment.
const askAgain = `{"start":"next","nodes":{"next":{"kind":"choice"},"ask":{"kind":"approval","params":{"approval_key":"$shared.decision"}},
	"pay":{"exec_type":"queue","service":"pay-again"}},"edges":[{"from":"next","action":"default","to":"ask"},{"from":"ask","action":"approved","to":"pay"},
	{"from":"ask","action":"rejected","to":"next"},{"from":"pay","action":"default","to":"next"}]}`

// opens waits for the open approval of a visit and returns its id.
func (s *server) opens(task string, visit int) string {
	found := s.until("/v1/approvals?q="+task, func(v obj) bool {
		items := v["items"].([]any)
		return len(items) == 1 && items[0].(obj)["visit"] == float64(visit)
	})
	return found["items"].([]any)[0].(obj)["id"].(string)
}

func TestEachVisitOfAnApprovalHasAnIDAndAnAnswerOfItsOwn(t *testing.T) {
	onBothStores(t, func(s *server) {
		task := s.call(201, "POST", "/v1/tasks", obj{"flow": s.publish(askAgain),
			"params": obj{"approval_key": "$params.z", "z": true}})["id"].(string)
		first := s.opens(task, 1)
		link := s.call(200, "POST", "/v1/approvals/"+first+"/link", obj{"name": "Bo"})["token"].(string)
		require.Equal(t, true, s.call(200, "POST", "/v1/approve/"+first, obj{"action": "approved"}, "Troupe-Link", link)["accepted"])
		s.report("pay-again", flow.Report{})
		second := s.opens(task, 2)
		require.NotEqual(t, first, second)

		again := s.call(200, "POST", "/v1/approve/"+first, obj{"action": "approved"}, "Troupe-Link", link)
		require.Equal(t, []any{"answered", "Bo"}, []any{again["state"], again["answered_by"]}, "the same click is told what it has done")
		s.refused(401, "header.Troupe-Link", "POST", "/v1/approve/"+second, obj{"action": "approved"}, "Troupe-Link", link)
		require.Equal(t, second, s.opens(task, 2), "and answers no later question")

		s.call(200, "POST", "/v1/approvals/"+second, obj{"action": "rejected"})
		s.opens(task, 3)
		s.call(200, "POST", "/v1/tasks/"+task+"/signal", obj{"key": "decision", "value": true})
		s.report("pay-again", flow.Report{})
		s.opens(task, 4)
	})
}
