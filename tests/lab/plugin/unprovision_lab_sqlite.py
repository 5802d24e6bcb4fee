"""Lets writers of Ironic's sqlite database wait for each other instead of failing.

A transaction that reads first and writes later gets "database is locked" at once when another one
has written in between, however long the time-out. Ironic then tries again after up to a second,
for minutes in sum when several nodes work at the same time. A transaction that says at its begin
that it will write has nothing to lose: it waits its turn, a few milliseconds.
"""

import sqlalchemy
from oslo_db import exception
from oslo_db.sqlalchemy import enginefacade

from ironic.db.sqlalchemy import api


def writes():
    """Tell whether the transaction that this thread begins is a writer's."""
    try:
        return enginefacade._transaction_ctx_for_context(api._CONTEXT).mode is enginefacade._WRITER
    except exception.NoEngineContextEstablished:
        return False


# A listener of the class comes before oslo.db's own, of the engine, which begins a transaction
# only if this mark is not set.
@sqlalchemy.event.listens_for(sqlalchemy.engine.Engine, 'begin')
def begin(connection):
    """Begin a writer's transaction as such."""
    if connection.dialect.name == 'sqlite' and writes():
        connection.exec_driver_sql('BEGIN IMMEDIATE')
        connection.info['in_transaction'] = True
