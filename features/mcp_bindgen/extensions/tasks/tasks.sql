create table if not exists tasks (
    place integer primary key autoincrement, id text not null unique, principal text not null,
    version integer not null, record blob not null, open integer not null, removable_at real not null,
    worker text not null default '', until real not null default 0, change integer not null default 0
);
create index if not exists tasks_of on tasks (principal, place);
create index if not exists tasks_due on tasks (until) where open;
create index if not exists tasks_removable on tasks (removable_at) where not open;
create index if not exists tasks_changed on tasks (change);
create table if not exists changes (number integer not null);
insert into changes select 0 where not exists (select 1 from changes);
create table if not exists usage (
    principal text primary key, open integer not null, tasks integer not null, bytes integer not null
);
create trigger if not exists inserted after insert on tasks begin
    update changes set number = number + 1;
    update tasks set change = (select number from changes) where place = new.place;
    insert into usage values (new.principal, new.open, 1, length(new.record)) on conflict do update
        set open = open + excluded.open, tasks = tasks + 1, bytes = bytes + excluded.bytes;
end;
create trigger if not exists updated after update of record on tasks begin
    update changes set number = number + 1;
    update tasks set change = (select number from changes) where place = new.place;
    update usage set open = open + new.open - old.open, bytes = bytes + length(new.record) - length(old.record)
        where principal = new.principal;
end;
create trigger if not exists deleted after delete on tasks begin
    update usage set open = open - old.open, tasks = tasks - 1, bytes = bytes - length(old.record)
        where principal = old.principal;
    delete from usage where principal = old.principal and tasks = 0;
end;
