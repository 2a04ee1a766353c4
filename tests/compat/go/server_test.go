package compat

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// server is one `angelia serve`: a child process on a free loopback port, with a data folder of its own.
type server struct {
	t       testing.TB
	data    string
	port    string
	process *exec.Cmd
}

var address = regexp.MustCompile(`mongodb://[^/]*:(\d+)/\S*`)

func newServer(t testing.TB) *server {
	data, err := os.MkdirTemp("", "angelia-compat-")
	must(t, err)
	s := &server{t: t, data: data, port: "0"}
	t.Cleanup(func() {
		s.kill()
		must(t, os.RemoveAll(s.data))
	})
	return s
}

// start returns the URI once the server accepts connections; a restart takes the port of the first start.
func (s *server) start() string {
	s.process = exec.Command(os.Getenv("ANGELIA_PROGRAM"), "serve", "--data", s.data, "--port", s.port, "--enable-test-commands")
	s.process.Stderr = os.Stderr
	output, err := s.process.StdoutPipe()
	must(s.t, err)
	must(s.t, s.process.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	must(s.t, err)
	found := address.FindStringSubmatch(line)
	if found == nil {
		s.t.Fatalf("angelia serve did not start: %s", line)
	}
	s.port = found[1]
	return found[0]
}

func (s *server) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait() // an error here says that it was killed
	s.process = nil
}
