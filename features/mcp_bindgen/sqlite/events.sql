create table sessions (
    key text primary key, record blob not null, epoch integer not null default 0, seen real not null,
    events integer not null default 0, size integer not null default 0, account text not null
) without rowid;
create table streams (
    session text not null references sessions on delete cascade, name text not null,
    last integer not null, pending blob, primary key (session, name)
) without rowid;
create table events (
    place integer primary key, session text not null, stream text not null, number integer not null, data blob not null,
    account text not null,
    foreign key (session, stream) references streams on delete cascade
);
create unique index events_by_stream on events (session, stream, number);
create index events_by_session on events (session);
create index events_by_account on events (account);
create table accounts (name text primary key, events integer not null, size integer not null) without rowid;
create trigger come after insert on events begin
    update sessions set events = events + 1, size = size + length(new.data) where key = new.session;
    insert into accounts values (new.account, 1, length(new.data)) on conflict do update
        set events = events + 1, size = size + excluded.size;
end;
create trigger gone after delete on events begin
    update sessions set events = events - 1, size = size - length(old.data) where key = old.session;
    update accounts set events = events - 1, size = size - length(old.data) where name = old.account;
    delete from accounts where name = old.account and events = 0;
    delete from streams where session = old.session and name = old.stream and pending is null
        and not exists (select 1 from events where session = old.session and stream = old.stream);
end;
