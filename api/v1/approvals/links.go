package approvals

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
	"github.com/troupe-engine/troupe/api/v1/render"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// A link lets a person without a token answer one approval. The link contains its permissions,
// signed with a key derived from the store's secret. So every member can verify the link, and no
// list of links is needed.

const (
	linkedPath = "/v1/approve/{approval}"
	maxLinked  = 1 << 20 // maximum bytes of an answer
	linkLasts  = 24 * time.Hour
)

func (h *Handler) addApprovalLinkRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "link-approval", Method: http.MethodPost,
		Path: "/v1/approvals/{approval}/link", Tag: "approvals",
		Summary: "Create a link to an approval",
		Text: "The link can read and answer this one approval until it expires, under the name for " +
			"which it was created, and nothing else."}, h.linkApproval)
	route.Register(rt, route.Operation{ID: "get-linked-approval", Method: http.MethodGet, Path: linkedPath, Tag: "approvals",
		Summary: "Get an approval by its link",
		Text:    "No token is needed: the header Troupe-Link has the token of the link."}, h.getLinked)
	route.Register(rt, route.Operation{ID: "answer-linked-approval", Method: http.MethodPost, Path: linkedPath, Tag: "approvals",
		Summary: "Answer an approval by its link",
		Text:    "Like answer-approval, under the name of the link."}, h.answerLinked)
}

// MountLinks adds the routes that accept a link in place of a token.
func (h *Handler) MountLinks(shell *api.Server) {
	for _, way := range []string{"GET ", "POST "} {
		shell.MountOpen(way+linkedPath, api.ForPages(shell.FromOutside(h.Router, maxLinked)))
	}
}

// linkTerms is the signed content of a link.
type linkTerms struct {
	Approval string `json:"a"`
	Name     string `json:"n"`
	// id of the token that created the link; the link is invalid when that token is
	Token string `json:"t,omitempty"`
	Until int64  `json:"u"` // Unix milliseconds
}

// linkKey returns the key that signs links. It reads the key from the store once.
func (h *Handler) linkKey(ctx context.Context) ([]byte, error) {
	if key := h.links.Load(); key != nil {
		return *key, nil
	}
	// the secret never changes, and unknown callers must not cause reads of the store
	secret, err := h.Store.Secret(ctx)
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

// readLink returns the content of a link's token. ok reports whether the signature is valid.
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
	Body wire.LinkRequest
}

func (h *Handler) linkApproval(ctx context.Context, in *linkApprovalInput) (*route.Response[wire.ApprovalLink], error) {
	row, err := h.approvalRow(ctx, in.Approval)
	if err != nil {
		return nil, err
	}
	if row.State != flow.ApprovalOpen {
		return nil, route.LocateError("path.approval", flow.Errorf(flow.Conflict, "the task no longer waits for this decision"))
	}
	if err := flow.CheckText("name", in.Body.Name); err != nil {
		return nil, route.LocateError("body.name", err)
	}
	lasts := time.Duration(in.Body.ExpiresInMS) * time.Millisecond
	if lasts == 0 {
		lasts = linkLasts
	}
	key, err := h.linkKey(ctx)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(lasts).UnixMilli()
	token, err := signLink(key, linkTerms{row.ID(), api.Signer(ctx, in.Body.Name), api.Who(ctx).Token, until})
	return &route.Response[wire.ApprovalLink]{Body: wire.ApprovalLink{Path: "/ui/approve/" + row.ID() + "#" + token,
		Token: token, ExpiresAt: wire.Millis(until)}}, err
}

// verifyLink returns the name that a link was created for, or an error if the link is not valid for
// the approval.
func (h *Handler) verifyLink(ctx context.Context, approval, token string) (name string, err error) {
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
		why = "the token that created the link is no longer valid"
	}
	api.NoteRefusal(ctx, why)
	return "", &route.LocatedError{Where: "header.Troupe-Link",
		Hint: "request a new link",
		Err:  &api.Refusal{Status: http.StatusUnauthorized, Kind: flow.Denied, Text: why}}
}

func (h *Handler) goodToken(ctx context.Context, id string) (bool, error) {
	if id == "" || h.Router.Shell == nil {
		return true, nil
	}
	return h.Router.Shell.KnowsToken(ctx, id)
}

// LinkHeader carries the token of a link.
type LinkHeader struct {
	Link string `header:"Troupe-Link" maxLength:"8000" doc:"Token of the link."`
}

type getLinkedInput struct {
	ApprovalPath
	LinkHeader
	render.Values
}

func (h *Handler) getLinked(ctx context.Context, in *getLinkedInput) (*route.Response[wire.ApprovalDetails], error) {
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
	Body wire.ApprovalAnswer
}

func (h *Handler) answerLinked(ctx context.Context, in *answerLinkedInput) (*route.Response[wire.AnsweredApproval], error) {
	name, err := h.verifyLink(ctx, in.Approval, in.Link)
	if err != nil {
		return nil, err
	}
	in.Body.AnsweredBy = name
	return h.answerOf(ctx, in.Approval, &in.Body)
}
