package v1

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// Links let a person without a token answer one approval. The permissions of a link are part of it,
// signed with a key derived from the store's secret. So every member can verify it, and no list of
// links exists.

const (
	linkedPath = "/v1/approve/{approval}"
	maxLinked  = 1 << 20 // bytes of an answer
	linkLasts  = 24 * time.Hour
)

func (h *approvalHandler) addApprovalLinkRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "link-approval", method: http.MethodPost,
		path: "/v1/approvals/{approval}/link", tag: "approvals",
		summary: "Make a link by which somebody may answer an approval",
		text: "Whoever has the link may read and answer this one approval until it expires, " +
			"with the name it was made for, and nothing else."}, h.linkApproval)
	registerOperation(rt, apiOperation{id: "get-linked-approval", method: http.MethodGet, path: linkedPath, tag: "approvals",
		summary: "Read an approval by a link", text: "No token is needed: the header Troupe-Link has that of the link."}, h.getLinked)
	registerOperation(rt, apiOperation{id: "answer-linked-approval", method: http.MethodPost, path: linkedPath, tag: "approvals",
		summary: "Answer an approval by a link", text: "As answer-approval does, with the name of the link."}, h.answerLinked)
}

// mountLinks adds the routes that accept a link instead of a token.
func (h *approvalHandler) mountLinks(shell *api.Server) {
	for _, way := range []string{"GET ", "POST "} {
		shell.MountOpen(way+linkedPath, api.ForPages(shell.FromOutside(h.router, maxLinked)))
	}
}

// linkTerms is the signed content of a link.
type linkTerms struct {
	Approval string `json:"a"`
	Name     string `json:"n"`
	// id of the token of the store that made the link; the link is valid as long as that token
	Token string `json:"t,omitempty"`
	Until int64  `json:"u"` // Unix milliseconds
}

// linkKey returns the key that signs links.
func (h *approvalHandler) linkKey(ctx context.Context) ([]byte, error) {
	if key := h.links.Load(); key != nil {
		return *key, nil
	}
	// the secret never changes; reading it takes a turn at the store, which strangers must not
	// cause at will
	secret, err := h.store.Secret(ctx)
	if err != nil {
		return nil, err
	}
	key := signText([]byte(secret), "links to approvals")
	h.links.Store(&key)
	return key, nil
}

func signText(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func signLink(key []byte, t linkTerms) (string, error) {
	text, err := json.Marshal(t)
	terms := base64.RawURLEncoding.EncodeToString(text)
	return terms + "." + base64.RawURLEncoding.EncodeToString(signText(key, terms)), err
}

// readLink returns the content of a link's token if the signature is ours.
func readLink(key []byte, token string) (t linkTerms, ok bool) {
	terms, signed, _ := strings.Cut(token, ".")
	mac, err := base64.RawURLEncoding.DecodeString(signed)
	if err != nil || !hmac.Equal(mac, signText(key, terms)) {
		return t, false
	}
	text, err := base64.RawURLEncoding.DecodeString(terms)
	return t, err == nil && json.Unmarshal(text, &t) == nil
}

type linkApprovalInput struct {
	ApprovalPath
	Body wire.NewLink
}

func (h *approvalHandler) linkApproval(ctx context.Context, in *linkApprovalInput) (*bodyResponse[wire.Link], error) {
	row, err := h.approvalRow(ctx, in.Approval)
	if err != nil {
		return nil, err
	}
	if row.State != flow.ApprovalOpen {
		return nil, locateError("path.approval", flow.Errorf(flow.Conflict, "nobody waits for this decision any longer"))
	}
	if err := flow.CheckText("name", in.Body.Name); err != nil {
		return nil, locateError("body.name", err)
	}
	lasts := time.Duration(in.Body.ExpiresIn) * time.Second
	if lasts == 0 {
		lasts = linkLasts
	}
	key, err := h.linkKey(ctx)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(lasts).UnixMilli()
	token, err := signLink(key, linkTerms{row.ID(), api.Signer(ctx, in.Body.Name), api.Who(ctx).Token, until})
	return &bodyResponse[wire.Link]{wire.Link{Path: "/ui/approve/" + row.ID() + "#" + token,
		Token: token, ExpiresAt: wire.Millis(until)}}, err
}

// verifyLink returns the name of the person that a link lets answer an approval.
func (h *approvalHandler) verifyLink(ctx context.Context, approval, token string) (name string, err error) {
	key, err := h.linkKey(ctx)
	if err != nil {
		return "", err
	}
	t, ok := readLink(key, token)
	why := ""
	switch {
	case !ok || t.Approval != approval:
		why = "the link is not one of this server's, or is for another approval"
	case time.Now().UnixMilli() >= t.Until:
		why = "the link has expired"
	default:
		if good, err := h.goodToken(ctx, t.Token); good || err != nil {
			return t.Name, err
		}
		why = "the token by which the link was made is good no longer"
	}
	api.NoteRefusal(ctx, why)
	return "", &locatedError{where: "header.Troupe-Link",
		hint: "ask whoever sent the link for a new one",
		err:  &api.Refusal{Status: http.StatusUnauthorized, Kind: flow.Denied, Text: why}}
}

func (h *approvalHandler) goodToken(ctx context.Context, id string) (bool, error) {
	if id == "" || h.router.shell == nil {
		return true, nil
	}
	return h.router.shell.KnowsToken(ctx, id)
}

// LinkHeader carries the token of a link.
type LinkHeader struct {
	Link string `header:"Troupe-Link" maxLength:"8000" doc:"token of the link"`
}

type getLinkedInput struct {
	ApprovalPath
	LinkHeader
	Values
}

func (h *approvalHandler) getLinked(ctx context.Context, in *getLinkedInput) (*bodyResponse[wire.Question], error) {
	name, err := h.verifyLink(ctx, in.Approval, in.Link)
	if err != nil {
		return nil, err
	}
	q, err := h.getApproval(ctx, &getApprovalInput{in.ApprovalPath, in.Values})
	if err == nil {
		q.Body.Name = name
	}
	return q, err
}

type answerLinkedInput struct {
	ApprovalPath
	LinkHeader
	Body wire.Answer
}

func (h *approvalHandler) answerLinked(ctx context.Context, in *answerLinkedInput) (*bodyResponse[wire.Answered], error) {
	name, err := h.verifyLink(ctx, in.Approval, in.Link)
	if err != nil {
		return nil, err
	}
	in.Body.By = name
	return h.answerOf(ctx, in.Approval, &in.Body)
}
