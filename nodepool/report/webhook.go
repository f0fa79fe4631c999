package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// webhookTimeout bounds a request to the webhook. A message that is not delivered in time is dropped: no program
// relies on it.
const webhookTimeout = 5 * time.Second

// Webhook posts messages for people to a URL, as {"text": …}, the format of Slack, Mattermost and others. The URL is a
// secret: errors do not contain it.
type Webhook struct {
	URL    string
	Client *http.Client
}

func (w Webhook) post(ctx context.Context, text string) error {
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL of the webhook is no URL")
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := w.Client.Do(request)
	if err != nil {
		return fmt.Errorf("the webhook cannot be reached: %w", withoutURL(err))
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)); err != nil {
		return fmt.Errorf("the webhook cannot be read: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answered %s", response.Status)
	}
	return nil
}

// withoutURL drops the URL from an error of a request.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
