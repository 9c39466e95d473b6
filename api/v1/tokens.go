package v1

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

const tokensPath = "/v1/tokens"

// maxTokens bounds the tokens that every member keeps in memory.
const maxTokens = 1000

func (h *accountHandler) addTokenRoutes(rt *apiRouter) {
	registerOperation(rt, apiOperation{id: "list-tokens", method: http.MethodGet, path: tokensPath, tag: "member",
		summary: "List the tokens of the store, in order of name",
		text:    "Those that members were started with are not among them."}, h.listTokens)
	registerOperation(rt, apiOperation{id: "create-token", method: http.MethodPost, path: tokensPath, tag: "member", created: true,
		summary: "Make a token with a role",
		text: "The token is answered this once: only its hash is kept. It is good with the " +
			"member that answers at once, with others within five seconds."}, h.createToken)
	registerOperation(rt, apiOperation{id: "delete-token", method: http.MethodDelete, path: tokensPath + "/{token}", tag: "member",
		summary: "Delete a token, and tell what it was",
		text: "It is good no longer with the member that answers at once, with others within " +
			"five seconds, and neither are cookies for it. Streams that it has opened end " +
			"within ten seconds."}, h.deleteToken)
}

func (h *accountHandler) listTokens(ctx context.Context, _ *struct{}) (*bodyResponse[wire.Page[wire.Token]], error) {
	tokens, err := h.store.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Token]{Items: make([]wire.Token, len(tokens))}
	for i := range tokens {
		page.Items[i] = toToken(&tokens[i])
	}
	return &bodyResponse[wire.Page[wire.Token]]{page}, nil
}

func toToken(t *persistence.Token) wire.Token {
	return wire.Token{ID: t.ID, Name: t.Name, Role: t.Role, CreatedAt: wire.Millis(t.CreatedAt),
		CreatedBy: t.CreatedBy, ExpiresAt: wire.Millis(t.ExpiresAt), LastUsedAt: wire.Millis(t.LastUsedAt)}
}

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9@._-]{0,63}$`)

func (h *accountHandler) createToken(ctx context.Context, in *struct{ Body wire.CreateToken }) (*statusResponse[wire.TokenCreated], error) {
	if !tokenName.MatchString(in.Body.Name) {
		return nil, newInvalidError("body.name",
			"a name begins with a letter or digit and has up to 64 of A-Z, a-z, 0-9, '@', '.', "+
				"'_' and '-'", "%.80q is no name for a token", in.Body.Name)
	}
	if h.router.shell == nil || !h.router.shell.NeedsToken() {
		return nil, &locatedError{where: "body",
			hint: "start every member with a token of its own first (--token-file, --token): it " +
				"is the one by which you come in to make others",
			err: flow.Errorf(flow.Conflict, "this member was started without a token, so "+
				"everybody may do everything, and another token would keep nobody out")}
	}
	if err := h.checkTokenLimit(ctx); err != nil {
		return nil, err
	}
	text, hash := api.NewToken()
	now := h.engine.Now().UnixMilli()
	t := persistence.Token{ID: strings.ToLower(rand.Text()), Name: in.Body.Name, Role: in.Body.Role,
		Hash: hash, CreatedAt: now, CreatedBy: api.Who(ctx).Name}
	if in.Body.ExpiresInMS > 0 {
		t.ExpiresAt = now + in.Body.ExpiresInMS
	}
	if err := h.router.shell.AddToken(ctx, t); errors.Is(err, persistence.ErrDuplicate) {
		return nil, &locatedError{where: "body.name",
			hint: "choose another name, or delete that one",
			err:  flow.Errorf(flow.Conflict, "there is a token %q", t.Name)}
	} else if err != nil {
		return nil, err
	}
	h.logger.Info("a token was made", "token", t.Name, "role", t.Role, "by", t.CreatedBy)
	return &statusResponse[wire.TokenCreated]{http.StatusCreated, wire.TokenCreated{Token: toToken(&t), Secret: text}}, nil
}

func (h *accountHandler) checkTokenLimit(ctx context.Context) error {
	tokens, err := h.store.ListTokens(ctx)
	if err == nil && len(tokens) >= maxTokens {
		return &locatedError{where: "body", hint: "delete those that nobody uses",
			err: flow.Errorf(flow.Limit, "there are %d tokens already", maxTokens)}
	}
	return err
}

// TokenPath identifies a token.
type TokenPath struct {
	Token string `path:"token" minLength:"1" maxLength:"64" doc:"id or name of the token"`
}

func (h *accountHandler) deleteToken(ctx context.Context, in *TokenPath) (*bodyResponse[wire.Token], error) {
	tokens, err := h.store.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	t := tokenBy(tokens, in.Token)
	if t == nil || h.router.shell == nil {
		return nil, newNotFoundError("path.token", "GET /v1/tokens lists them", "there is no token %.80q", in.Token)
	}
	if err := h.router.shell.DeleteToken(ctx, t.ID); err != nil && !api.Missing(err) {
		return nil, err
	}
	h.logger.Info("a token was deleted", "token", t.Name, "role", t.Role, "by", api.Who(ctx).Name)
	return &bodyResponse[wire.Token]{toToken(t)}, nil
}

// tokenBy finds a token by its id, or else by its name.
func tokenBy(tokens []persistence.Token, what string) *persistence.Token {
	var named *persistence.Token
	for i := range tokens {
		if tokens[i].ID == what {
			return &tokens[i]
		}
		if tokens[i].Name == what {
			named = &tokens[i]
		}
	}
	return named
}
