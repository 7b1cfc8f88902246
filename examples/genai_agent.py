"""google-genai: one line adds hooks to every call of the client.

The SDK calls write_file by itself (automatic function calling), also through the hooks.
"""

from google import genai
from google.genai import types
from shared import PROMPT, is_offline, load_config, local_server, report, write_file

from hookline.agent import hooked


def make_client(server):
    if server is None:
        return genai.Client()
    return genai.Client(api_key="none", http_options={"base_url": server.url})


def main():
    with local_server(is_offline()) as server:
        client = make_client(server)
        client = hooked(client, load_config())  # the only change
        response = client.models.generate_content(
            model="gemini-2.5-flash",
            contents=PROMPT,
            config=types.GenerateContentConfig(tools=[write_file]),
        )
    report(response.text)


main()
