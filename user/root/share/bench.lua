-- bench.lua [ROUNDS]: a little of everything that programs do, to be profiled:
-- strings, tables, sorting, patterns, numbers, garbage, files, other programs.
local rounds = tonumber(arg[1] or 3)

-- Numbers: the sieve of Eratosthenes.
local function primes(limit)
    local composite, count = {}, 0
    for n = 2, limit do
        if not composite[n] then
            count = count + 1
            for m = n * n, limit, n do
                composite[m] = true
            end
        end
    end
    return count
end

-- Strings: made from numbers, joined.
local function text(words)
    local parts, seed = {}, 1
    for i = 1, words do
        seed = (seed * 16807) % 2147483647 -- Park and Miller, 1988
        parts[i] = string.format("w%d", seed % 997)
    end
    return table.concat(parts, " ")
end

-- Patterns and tables: how often each word is there.
local function count_words(line)
    local counts = {}
    for word in line:gmatch("%a%d+") do
        counts[word] = (counts[word] or 0) + 1
    end
    return counts
end

-- Sorting, with a function that compares.
local function ranking(counts)
    local words = {}
    for word in pairs(counts) do
        words[#words + 1] = word
    end
    table.sort(words, function(a, b)
        if counts[a] ~= counts[b] then
            return counts[a] > counts[b]
        end
        return a < b
    end)
    return words
end

-- Files: written and read again, a line at a time.
local function through_a_file(words)
    local name = os.tmpname()
    local file = assert(io.open(name, "w"))
    file:setvbuf("line")
    for _ = 1, 5 do
        for _, word in ipairs(words) do
            file:write(word, "\n")
        end
    end
    file:close()
    local lines = 0
    for _ in io.lines(name) do
        lines = lines + 1
    end
    os.remove(name)
    return lines
end

-- Other programs, on other CPUs meanwhile; what they say comes over a pipe.
local function start_programs()
    return io.popen("find /bin /test /usr -type f | xargs md5sum | sort")
end

local function count_lines(pipe)
    local count = 0
    for _ in pipe:lines() do
        count = count + 1
    end
    pipe:close()
    return count
end

for _ = 1, rounds do
    local pipe = start_programs()
    local found = primes(60000)
    local counts = count_words(text(30000))
    local words = ranking(counts)
    print(found, #words, through_a_file(words), count_lines(pipe) > 0)
end
