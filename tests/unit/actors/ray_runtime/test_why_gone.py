"""Why the actors of a service are gone for good."""

from ray.exceptions import ActorDiedError, RayTaskError

from actors.broker.bus import BrokerRefused
from actors.ray_runtime.role_actors import why_gone


def test_an_actor_that_fails_to_start_again_is_no_node_that_has_died() -> None:
    refusal = BrokerRefused("broker at there refused the credentials")
    failed = RayTaskError("CommitterActor.__init__", f"Traceback:\nBrokerRefused: {refusal}", refusal)
    assert why_gone(ActorDiedError(failed)) == (
        "an actor ended and failed to start again: BrokerRefused: broker at there refused the credentials"
    )
    assert "has this machine's Ray node died?" in why_gone(ActorDiedError())
