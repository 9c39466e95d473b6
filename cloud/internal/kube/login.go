package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// execLogin gets tokens from another program, a credential plugin of client-go, as configured by
// exec in a kubeconfig.
type execLogin struct {
	path    string
	args    []string
	env     []string // in addition to this process's environment
	version string   // API version of the plugin protocol
	hint    string   // instruction if the program is missing

	mu        sync.Mutex // held while the program runs; concurrent callers wait for its token
	token     string     // "" if the program has to run
	expiresAt time.Time  // zero if unlimited
	failure   error      // error of the last run
	askedAt   time.Time
}

// loginStays is the time limit of the program. loginsSooner is the minimal time between runs after
// a failure or a rejected token.
const (
	loginStays   = 30 * time.Second
	loginsSooner = 10 * time.Second
)

// loginPart is the exec part of a kubeconfig.
type loginPart struct {
	Version string   `yaml:"apiVersion"`
	Command string   `yaml:"command"`
	Args    []string `yaml:"args"`
	Env     []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	} `yaml:"env"`
	Hint        string `yaml:"installHint"`
	Interactive string `yaml:"interactiveMode"`
	TellCluster bool   `yaml:"provideClusterInfo"`
}

const (
	loginGroup = "client.authentication.k8s.io/"
	loginKind  = "ExecCredential"
	loginInfo  = "KUBERNETES_EXEC_INFO" // variable with the input of the program
	clusterOwn = loginGroup + "exec"    // extension of a cluster that is passed to the program
)

// execCredential is the input and output of the program.
type execCredential struct {
	Version string `json:"apiVersion"`
	Kind    string `json:"kind"`
	Spec    struct {
		Cluster     *clusterInfo `json:"cluster,omitempty"`
		Interactive bool         `json:"interactive"`
	} `json:"spec"`
	Status *struct {
		Until       *time.Time `json:"expirationTimestamp"`
		Token       string     `json:"token"`
		Certificate string     `json:"clientCertificateData"`
	} `json:"status,omitempty"`
}

// clusterInfo is the part of the input about a cluster.
type clusterInfo struct {
	Server      string `json:"server"`
	ServerName  string `json:"tls-server-name,omitempty"`
	Insecure    bool   `json:"insecure-skip-tls-verify,omitempty"`
	Authorities []byte `json:"certificate-authority-data,omitempty"`
	Config      any    `json:"config,omitempty"`
}

// loginTo returns the login of a user for a cluster; nil if none. A token or certificate in the
// kubeconfig takes precedence.
func loginTo(of *clusterPart, authorities []byte, user *userPart, dir string) (*execLogin, error) {
	as := user.Exec
	switch {
	case as == nil || user.Token+user.TokenFile+user.Certificate+user.CertificateData != "":
		return nil, nil
	case as.Version != loginGroup+"v1" && as.Version != loginGroup+"v1beta1":
		return nil, fmt.Errorf("its user asks another program for a token in version %q, and "+
			"%sv1 and v1beta1 are known", as.Version, loginGroup)
	case as.Command == "":
		return nil, errors.New("its user asks another program for a token, and does not name it")
	case as.Interactive == "Always":
		return nil, fmt.Errorf("its user asks the program %s for a token, which needs somebody at a terminal", as.Command)
	}
	l := &execLogin{path: as.Command, args: as.Args, version: as.Version, hint: as.Hint}
	if strings.ContainsRune(l.path, filepath.Separator) {
		l.path = resolvePath(dir, l.path)
	}
	for _, v := range as.Env {
		l.env = append(l.env, v.Name+"="+v.Value)
	}
	info := execCredential{Version: l.version, Kind: loginKind}
	if as.TellCluster {
		info.Spec.Cluster = &clusterInfo{of.Server, of.ServerName, of.Insecure, authorities, of.findExtension(clusterOwn)}
	}
	text, err := json.Marshal(info)
	l.env = append(l.env, loginInfo+"="+string(text))
	return l, err
}

// bearerToken returns an unexpired token.
func (l *execLogin) bearerToken(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.token != "" && (l.expiresAt.IsZero() || time.Now().Before(l.expiresAt)):
		return l.token, nil
	case l.failure != nil && time.Since(l.askedAt) < loginsSooner:
		return "", l.failure
	}
	token, until, err := l.runPlugin(ctx)
	if err != nil && ctx.Err() != nil { // not an error of the program
		return "", err
	}
	l.token, l.expiresAt, l.failure, l.askedAt = token, until, err, time.Now()
	return token, err
}

// dropToken drops a rejected token. It returns false if a retry is not useful.
func (l *execLogin) dropToken(token string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token != token {
		return true // a concurrent caller has got another one
	}
	if time.Since(l.askedAt) < loginsSooner {
		return false
	}
	l.token = ""
	return true
}

// runPlugin runs the program.
func (l *execLogin) runPlugin(ctx context.Context) (token string, until time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, loginStays)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.path, l.args...)
	cmd.Env, cmd.WaitDelay = slices.Concat(os.Environ(), l.env), time.Second
	text, err := cmd.Output()
	if err == nil {
		token, until, err = l.parseCredential(text)
	}
	if err != nil {
		err = fmt.Errorf("the program %s, which is asked for a token for Kubernetes: %w", l.path, l.explainError(err))
	}
	return token, until, err
}

// parseCredential parses the output of the program.
func (l *execLogin) parseCredential(text []byte) (token string, until time.Time, err error) {
	var c execCredential
	switch err := json.Unmarshal(text, &c); {
	case err != nil:
		return "", until, fmt.Errorf("what it prints is no %s: %w", loginKind, err)
	case c.Kind != loginKind || c.Version != l.version:
		return "", until, fmt.Errorf("it answers with a %.100q of %.100q, not with an %s of %s", c.Kind, c.Version, loginKind, l.version)
	case c.Status == nil || c.Status.Token == "" && c.Status.Certificate == "":
		return "", until, errors.New("it tells no token")
	case c.Status.Token == "":
		return "", until, errors.New("it tells a certificate and no token, which alone is used here")
	case c.Status.Until != nil:
		until = *c.Status.Until
	}
	return c.Status.Token, until, nil
}

// explainError adds the last error line of the program to an error, or the instruction if the
// program is missing.
func (l *execLogin) explainError(err error) error {
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		lines := bytes.Split(bytes.TrimSpace(failed.Stderr), []byte("\n"))
		return fmt.Errorf("%w: %.500s", err, lines[len(lines)-1])
	}
	if l.hint != "" && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist)) {
		return fmt.Errorf("%w: %s", err, l.hint)
	}
	return err
}
