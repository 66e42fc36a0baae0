"""The libraries that call `torch.compile` for their users: each as plain Python, through torch's own compiler and
through `stator.install()`, side by side. `python benchmarks/clients/run.py [client …] [--breaks] [--out results.json]`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CLIENTS = (
    "hf_trainer",
    "hf_accelerate",
    "lightning_trainer",
    "peft_lora",
    "diffusers_pipeline",
    "timm_training",
    "sentence_encoder",
    "geometric_graphs",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="client", help=f"of {', '.join(CLIENTS)}")
    parser.add_argument("--breaks", action="store_true", help="list the graph breaks")
    parser.add_argument("--out", type=Path, help="where the results go as JSON")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one client")
    asked = parser.parse_args()
    if unknown := set(asked.clients) - set(CLIENTS):
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    results = []
    for name in asked.clients or CLIENTS:
        results.append(result := measured(name, asked.timeout))
        report(result, asked.breaks)
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(results, indent=1))
    return int(any(failed(result) for result in results))


def measured(name: str, timeout: float) -> dict[str, Any]:
    """What one client's process says, or how it ended."""
    command = [sys.executable, str(HERE / "one.py"), name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"client": name, "error": f"not done after {timeout:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"client"')]
    if done.returncode or not lines:
        return {"client": name, "error": "\n".join(done.stderr.splitlines()[-15:])}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def report(result: dict[str, Any], breaks: bool) -> None:
    print(f"\n{result['client']}")
    for word in ("skipped", "error"):
        if word in result:
            print(f"  {word}: {result[word]}")
    for way, found in result.get("ways", {}).items():
        counts = f"{found['graphs']:4} graphs {len(found['breaks']):4} breaks {found['recompiles']:4} recompiles"
        print(f"  {way:17} {found['outcome']:12} {counts} {found['seconds']:7.1f} s")
        for text in sorted(set(found["breaks"])) if breaks else ():
            print(f"    {found['breaks'].count(text)} x {text}")
    sys.stdout.flush()


def failed(result: dict[str, Any]) -> bool:
    """Whether Stator did not do what plain Python does."""
    ways = result.get("ways", {})
    wrong = [
        w for w, found in ways.items() if w.startswith("stator") and found["outcome"][:5] not in ("equal", "close")
    ]
    return bool(wrong) or "error" in result


if __name__ == "__main__":
    sys.exit(main())
