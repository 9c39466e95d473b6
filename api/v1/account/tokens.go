package account

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/v1/route"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

const tokensPath = "/v1/tokens"

// maxTokens bounds the number of tokens, because every member caches them in memory.
const maxTokens = 1000

func (h *Handler) addTokenRoutes(rt *route.Router) {
	route.Register(rt, route.Operation{ID: "list-tokens", Method: http.MethodGet, Path: tokensPath, Tag: "member",
		Summary: "List tokens",
		Text: "The tokens of the store, in order of name, without those that members were started " +
			"with."}, h.listTokens)
	route.Register(rt, route.Operation{ID: "create-token", Method: http.MethodPost, Path: tokensPath, Tag: "member", Created: true,
		Summary: "Create a token",
		Text: "Only this answer contains the token, because only its hash is stored. It is valid at " +
			"once on the member that answers, and within five seconds on the others."}, h.createToken)
	route.Register(rt, route.Operation{ID: "delete-token", Method: http.MethodDelete, Path: tokensPath + "/{token}", Tag: "member",
		Summary: "Delete a token",
		Text: "Returns the deleted token. It and its cookies become invalid at once on the member " +
			"that answers, and within five seconds on the others. Streams that it opened end " +
			"within ten seconds."}, h.deleteToken)
}

func (h *Handler) listTokens(ctx context.Context, _ *struct{}) (*route.Response[wire.Page[wire.Token]], error) {
	tokens, err := h.Store.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	page := wire.Page[wire.Token]{Items: make([]wire.Token, len(tokens))}
	for i := range tokens {
		page.Items[i] = toToken(&tokens[i])
	}
	return &route.Response[wire.Page[wire.Token]]{Body: page}, nil
}

func toToken(t *persistence.Token) wire.Token {
	return wire.Token{ID: t.ID, Name: t.Name, Role: t.Role, CreatedAt: wire.Millis(t.CreatedAt),
		CreatedBy: t.CreatedBy, ExpiresAt: wire.Millis(t.ExpiresAt), LastUsedAt: wire.Millis(t.LastUsedAt)}
}

var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9@._-]{0,63}$`)

func (h *Handler) createToken(ctx context.Context, in *struct{ Body wire.TokenRequest }) (*route.StatusResponse[wire.CreatedToken], error) {
	if !tokenName.MatchString(in.Body.Name) {
		return nil, route.NewInvalidError("body.name",
			"a name begins with a letter or digit and has up to 64 of A-Z, a-z, 0-9, '@', '.', "+
				"'_' and '-'", "%.80q is not a valid name for a token", in.Body.Name)
	}
	if h.Router.Shell == nil || !h.Router.Shell.NeedsToken() {
		return nil, &route.LocatedError{Where: "body",
			Hint: "first start every member with a token (--token-file, --token), " +
				"which then creates others",
			Err: flow.Errorf(flow.Conflict, "this member was started without a token, so it accepts "+
				"all requests, and another token would protect nothing")}
	}
	if err := h.checkTokenLimit(ctx); err != nil {
		return nil, err
	}
	text, hash := api.NewToken()
	now := h.Engine.Now().UnixMilli()
	t := persistence.Token{ID: strings.ToLower(rand.Text()), Name: in.Body.Name, Role: in.Body.Role,
		Hash: hash, CreatedAt: now, CreatedBy: api.Who(ctx).Name}
	if in.Body.ExpiresInMS > 0 {
		t.ExpiresAt = now + in.Body.ExpiresInMS
	}
	if err := h.Router.Shell.AddToken(ctx, t); errors.Is(err, persistence.ErrDuplicate) {
		return nil, &route.LocatedError{Where: "body.name",
			Hint: "choose another name, or delete that one",
			Err:  flow.Errorf(flow.Conflict, "there is a token %q", t.Name)}
	} else if err != nil {
		return nil, err
	}
	h.Logger.Info("token created", "token", t.Name, "role", t.Role, "by", t.CreatedBy)
	return &route.StatusResponse[wire.CreatedToken]{Status: http.StatusCreated,
		Body: wire.CreatedToken{Token: toToken(&t), Secret: text}}, nil
}

func (h *Handler) checkTokenLimit(ctx context.Context) error {
	tokens, err := h.Store.ListTokens(ctx)
	if err == nil && len(tokens) >= maxTokens {
		return &route.LocatedError{Where: "body", Hint: "delete unused tokens",
			Err: flow.Errorf(flow.Limit, "there are %d tokens already", maxTokens)}
	}
	return err
}

// TokenPath identifies a token.
type TokenPath struct {
	Token string `path:"token" minLength:"1" maxLength:"64" doc:"ID or name of the token."`
}

func (h *Handler) deleteToken(ctx context.Context, in *TokenPath) (*route.Response[wire.Token], error) {
	tokens, err := h.Store.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	t := tokenBy(tokens, in.Token)
	if t == nil || h.Router.Shell == nil {
		return nil, route.NewNotFoundError("path.token", "GET /v1/tokens lists them", "there is no token %.80q", in.Token)
	}
	if err := h.Router.Shell.DeleteToken(ctx, t.ID); err != nil && !api.Missing(err) {
		return nil, err
	}
	h.Logger.Info("token deleted", "token", t.Name, "role", t.Role, "by", api.Who(ctx).Name)
	return &route.Response[wire.Token]{Body: toToken(t)}, nil
}

// tokenBy returns the token with an id or, if there is none, with a name; nil if both are unknown.
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
